"""What leaves mpstui for other programs and other people: tables, event files, pictures of charts, a page of a run."""
