# inferstat_zoo_texts(OUT): writes the C file OUT with the texts of all models of the folder models/,
# sorted by category and name.  A change of a text configures again.
function(inferstat_zoo_texts out)
  file(GLOB paths CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/zoo/models/*.model")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${paths})
  set(sorted "")
  foreach(path IN LISTS paths)
    file(STRINGS "${path}" category REGEX "^category: ")
    file(STRINGS "${path}" name REGEX "^name: ")
    list(APPEND sorted "${category}|${name}|${path}")
  endforeach()
  list(SORT sorted CASE INSENSITIVE)
  set(arrays "")
  set(rows "")
  set(number 0)
  foreach(entry IN LISTS sorted)
    string(REGEX REPLACE "^.*[|]name: *([^|]*)[|](.*)$" "\\1;\\2" parts "${entry}")
    list(GET parts 0 name)
    list(GET parts 1 path)
    file(READ "${path}" bytes HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(APPEND arrays "static const char text_${number}[] = {${bytes}0};\n")
    string(APPEND rows "    {\"${name}\", text_${number}, sizeof text_${number} - 1},\n")
    math(EXPR number "${number} + 1")
  endforeach()
  file(CONFIGURE OUTPUT "${out}" @ONLY CONTENT
"#include \"server/workload/zoo/zoo_model.h\"

${arrays}
const struct zoo_text zoo_texts[] = {
${rows}};

const size_t zoo_text_count = sizeof zoo_texts / sizeof zoo_texts[0];
")
endfunction()
