"""What mpstui exports for other programs and people: tables, event files, pictures of charts, a page of a run."""
