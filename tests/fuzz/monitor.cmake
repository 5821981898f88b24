foreach(target fuzz_spool fuzz_runfile)
  inferstat_fuzz_target(${target} LINK inferstat_monitor)
  target_sources(${target} PRIVATE feed.c ../support/spool_rig.c)
endforeach()
