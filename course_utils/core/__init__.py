"""What every notebook needs: how a number is written, predicted from shapes alone, and measured."""
