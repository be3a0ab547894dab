"""What every notebook needs: how a number is said, predicted from shapes alone, and measured."""
