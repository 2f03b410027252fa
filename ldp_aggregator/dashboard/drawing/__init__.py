"""From numbers to what a page shows: figures, tables, sentences. No request comes here."""
