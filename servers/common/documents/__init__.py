"""Files of offices and publishers as text: PDF, Word, Excel, PowerPoint, OpenDocument and EPUB."""
