# A client in another language, written after proto/inferstat.proto alone.
inferstat_script_test(foreign_client foreign_client.py)
