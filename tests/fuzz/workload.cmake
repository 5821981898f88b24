foreach(target fuzz_gguf fuzz_tokenizer)
  inferstat_fuzz_target(${target} LINK inferstat_workload)
  target_sources(${target} PRIVATE gguf_feed.c)
endforeach()
