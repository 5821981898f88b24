add_executable(bench_ingest bench_ingest.c)
target_link_libraries(bench_ingest PRIVATE
  inferstat_options inferstat_store inferstat_test_producer inferstat_test_folder Threads::Threads)
target_compile_definitions(bench_ingest PRIVATE INFERSTATD="$<TARGET_FILE:inferstatd>")
add_dependencies(bench_ingest inferstatd)
