inferstat_unit_test(test_address LINK inferstat_wire)
inferstat_unit_test(test_arena LINK inferstat_wire)
inferstat_unit_test(test_socket LINK inferstat_wire)
inferstat_unit_test(test_codec LINK inferstat_wire)
inferstat_unit_test(test_codec_faults LINK inferstat_wire)
inferstat_unit_test(test_delivery LINK inferstat_core)
inferstat_unit_test(test_delivery_sim LINK inferstat_core)

inferstat_unit_test(test_wire_memory LINK inferstat_wire)
target_link_options(test_wire_memory PRIVATE -Wl,--wrap=malloc -Wl,--wrap=calloc
                                             -Wl,--wrap=realloc)
