# Copies of stores: backups, bundles, imports.
inferstat_script_test(cli.copies test_copies.sh LABELS cli)
