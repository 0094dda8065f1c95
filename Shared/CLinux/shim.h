// What the Glibc overlay does not show: eventfd with its constants, prctl, which takes any number of arguments, and
// what glibc has beyond POSIX.
#pragma once
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

static inline int mss_eventfd_make(void) { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); }

// Names the calling thread; cut to 15 bytes by the kernel.
static inline void mss_name_this_thread(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

// Whether the system may write this process's memory to disk, and others of its user look into it.
static inline int mss_set_dumpable(int is_dumpable) { return prctl(PR_SET_DUMPABLE, is_dumpable, 0, 0, 0); }
static inline int mss_get_dumpable(void) { return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0); }

// Closes every file from this number on in the program that is started.
extern int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int from);
