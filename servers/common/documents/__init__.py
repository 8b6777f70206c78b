"""Reads documents as text: PDF, Word, Excel, PowerPoint, OpenDocument and EPUB."""
