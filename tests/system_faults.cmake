# Has the system calls of all code that is linked statically go through system_faults.cc.
function(tepal_link_system_faults target)
  target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests/system_faults.cc)
  foreach(call IN ITEMS close dup fcntl fstat fsync lseek mmap open read rename stat unlink write
                        fcntl64 fstat64 lseek64 mmap64 open64 stat64)
    target_link_options(${target} PRIVATE -Wl,--wrap=${call})
  endforeach()
endfunction()
