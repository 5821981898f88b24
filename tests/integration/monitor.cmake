# The library and its example alone, without the other programs.
add_executable(test_library test_library.cpp)
target_link_libraries(test_library PRIVATE inferstat_shared)
target_include_directories(test_library PRIVATE "${PROJECT_SOURCE_DIR}/common/monitor")
target_compile_options(test_library PRIVATE -Wall -Wextra -Wpedantic
                       $<$<BOOL:${INFERSTAT_WERROR}>:-Werror>)
if(INFERSTAT_SANITIZE)
  target_link_options(test_library PRIVATE -fsanitize=${INFERSTAT_SANITIZE})
endif()
inferstat_add_test(integration.library.cpp COMMAND $<TARGET_FILE:test_library>)

inferstat_script_test(integration.library.example test_library.sh
  example "$<TARGET_FILE:example_engine>")
if(NOT INFERSTAT_SANITIZE)
  # A sanitizer's run-time adds symbols of its own and wants to be linked first.
  inferstat_script_test(integration.library.exports test_library.sh
    exports "$<TARGET_FILE:inferstat_shared>"
    "${PROJECT_SOURCE_DIR}/common/monitor/inferstat.h")
  inferstat_script_test(integration.library.standalone test_library.sh
    standalone "${CMAKE_C_COMPILER}" "${PROJECT_SOURCE_DIR}/common/monitor/inferstat.h"
    "$<TARGET_FILE:inferstat_shared>"
    "${PROJECT_SOURCE_DIR}/common/monitor/example_engine.c" "${CMAKE_CXX_COMPILER}")
endif()
