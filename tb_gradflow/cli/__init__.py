"""The command `tb-gradflow`. One module per subcommand, with `add_parser` and `run`; `main` dispatches."""
