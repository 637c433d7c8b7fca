# SPDX-License-Identifier: Apache-2.0
# One interface target, project_options, with language, warning, sanitizer and hardening flags. Flags
# that a compiler does not know are left out.
include(CheckCCompilerFlag)
include(CheckLinkerFlag)

add_library(project_options INTERFACE)
target_include_directories(project_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_definitions(project_options INTERFACE _GNU_SOURCE
                           SANDBOX_VERSION="${PROJECT_VERSION}")

function(project_flag flag)
  string(MAKE_C_IDENTIFIER "HAVE${flag}" have)
  check_c_compiler_flag("-Werror ${flag}" ${have})
  if(${have})
    target_compile_options(project_options INTERFACE ${flag})
  endif()
endfunction()

function(project_link_flag flag)
  string(MAKE_C_IDENTIFIER "HAVE_LINK${flag}" have)
  check_linker_flag(C "${flag}" ${have})
  if(${have})
    target_link_options(project_options INTERFACE ${flag})
  endif()
endfunction()

foreach(flag
    -Wall -Wextra -Wconversion -Wshadow -Wformat=2 -Wcast-qual -Wundef -Wvla -Wpointer-arith
    -Wstrict-prototypes -Wmissing-prototypes -Wimplicit-fallthrough -Wduplicated-cond -Wlogical-op
    -Wnull-dereference -Werror=format-security -Werror=implicit -Werror=incompatible-pointer-types
    -Werror=int-conversion -fno-strict-aliasing -fno-strict-overflow
    -fno-delete-null-pointer-checks -fexceptions -fvisibility=hidden)
  if(flag STREQUAL "-Wnull-dereference" AND SANDBOX_SANITIZE)
    continue() # gcc's sanitizer instrumentation makes it report impossible paths
  endif()
  project_flag(${flag})
endforeach()

if(SANDBOX_WERROR)
  target_compile_options(project_options INTERFACE -Werror)
endif()

if(SANDBOX_SANITIZE)
  target_compile_options(project_options INTERFACE -fsanitize=${SANDBOX_SANITIZE}
                         -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(project_options INTERFACE -fsanitize=${SANDBOX_SANITIZE})
endif()

if(SANDBOX_HARDEN)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
  target_compile_options(project_options INTERFACE -fPIE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
  foreach(flag -fstack-protector-strong -fstack-clash-protection -fcf-protection=full
               -mbranch-protection=standard -ftrivial-auto-var-init=zero)
    project_flag(${flag})
  endforeach()
  target_link_options(project_options INTERFACE -pie)
  foreach(flag -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,--as-needed)
    project_link_flag(${flag})
  endforeach()
endif()
