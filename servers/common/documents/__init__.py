"""Office and publishing formats as text: PDF, Word, Excel, PowerPoint, OpenDocument and EPUB."""
