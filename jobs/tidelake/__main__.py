"""`python -m tidelake`, for callers that have the interpreter and not the script."""

from tidelake.cli import main

main()
