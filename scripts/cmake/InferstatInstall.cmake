# What `cmake --install` puts where: programs and the library, the header and its
# pkg-config file, the manual pages, completions and unit.

set(inferstat_generated "${PROJECT_BINARY_DIR}/install")

install(TARGETS inferstat inferstatd inferstat-worker
        RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(TARGETS inferstat_shared
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        PUBLIC_HEADER DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(FILES common/monitor/example_engine.c DESTINATION "${CMAKE_INSTALL_DOCDIR}/examples")

# The prefix is found from where the file lies, so a moved tree still works.
file(RELATIVE_PATH INFERSTAT_PREFIX_FROM_PC "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" INFERSTAT_PREFIX_FROM_PC "${INFERSTAT_PREFIX_FROM_PC}")
configure_file(scripts/cmake/inferstat.pc.in "${inferstat_generated}/inferstat.pc" @ONLY)
install(FILES "${inferstat_generated}/inferstat.pc"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

file(GLOB pages CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/client/man/*.[1-8]")
foreach(page IN LISTS pages)
  string(REGEX REPLACE ".*\\.([1-8])$" "\\1" section "${page}")
  install(FILES "${page}" DESTINATION "${CMAKE_INSTALL_MANDIR}/man${section}")
endforeach()

# The client writes its own completions; what it knows is what they complete.
set(completions "")
foreach(pair bash=bash-completion/completions/inferstat zsh=zsh/site-functions/_inferstat
             fish=fish/vendor_completions.d/inferstat.fish)
  string(REPLACE "=" ";" pair "${pair}")
  list(GET pair 0 shell)
  list(GET pair 1 place)
  get_filename_component(name "${place}" NAME)
  get_filename_component(folder "${place}" DIRECTORY)
  set(file "${inferstat_generated}/${shell}/${name}")
  file(MAKE_DIRECTORY "${inferstat_generated}/${shell}")
  add_custom_command(
    OUTPUT "${file}"
    COMMAND inferstat completion ${shell} > "${file}"
    DEPENDS inferstat
    VERBATIM)
  list(APPEND completions "${file}")
  install(FILES "${file}" DESTINATION "${CMAKE_INSTALL_DATADIR}/${folder}")
endforeach()
add_custom_target(inferstat_completions ALL DEPENDS ${completions})

# The unit names the program where it is installed, which `--prefix` decides late.
install(CODE "
  set(INFERSTAT_BINDIR \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
  configure_file(\"${PROJECT_SOURCE_DIR}/server/collector/systemd/inferstatd.service.in\"
                 \"${inferstat_generated}/inferstatd.service\" @ONLY)")
install(FILES "${inferstat_generated}/inferstatd.service" DESTINATION lib/systemd/system)
install(FILES server/collector/systemd/inferstat.sysusers RENAME inferstat.conf
        DESTINATION lib/sysusers.d)
