# What `cmake --install` puts where.  Programs and the library, the header and
# its pkg-config file, and whatever manual pages, completions and units the
# rooms have beside their code.

set(inferstat_generated "${PROJECT_BINARY_DIR}/install")

install(TARGETS inferstat inferstatd inferstat-worker
        RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(TARGETS inferstat_shared LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(FILES common/monitor/inferstat.h DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
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

# completions/: NAME.bash, NAME.fish, _NAME (zsh).
set(completions "${PROJECT_SOURCE_DIR}/client/completions")
file(GLOB files CONFIGURE_DEPENDS "${completions}/*.bash")
foreach(file IN LISTS files)
  get_filename_component(name "${file}" NAME_WLE)
  install(FILES "${file}" RENAME "${name}"
          DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
endforeach()
file(GLOB files CONFIGURE_DEPENDS "${completions}/*.fish")
install(FILES ${files} DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
file(GLOB files CONFIGURE_DEPENDS "${completions}/_*")
install(FILES ${files} DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")

configure_file(server/collector/systemd/inferstatd.service.in
               "${inferstat_generated}/inferstatd.service" @ONLY)
install(FILES "${inferstat_generated}/inferstatd.service" DESTINATION lib/systemd/system)
install(FILES server/collector/systemd/inferstat.sysusers RENAME inferstat.conf
        DESTINATION lib/sysusers.d)
