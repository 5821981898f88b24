# A client in another language, written after proto/inferstat.proto alone.
inferstat_script_test(foreign_client foreign_client.py)

# Peers that mean harm, at each kind of address.
foreach(transport ipc tcp curve)
  inferstat_script_test(hostile_peers.${transport} hostile_peers.py ${transport})
endforeach()

# An impostor of the collector, by another user.
inferstat_script_test(impostor test_impostor.py ImpostorTest)
inferstat_script_test(default_folder test_impostor.py DefaultFolderTest)

# Programs that know the .proto only; and that it says what the programs do.
foreach(class ContractTest IpcTest CurveTest)
  inferstat_script_test(foreign.${class} test_foreign.py ${class})
endforeach()
