# The whole path, over ipc and over TCP.
inferstat_script_test(path.ipc test_path.py PathTest)
inferstat_script_test(path.tcp test_path.py TcpPathTest)
