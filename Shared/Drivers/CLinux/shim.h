// Functions that the Glibc overlay does not import: eventfd with its constants, the variadic prctl and syscall, and
// glibc functions beyond POSIX.
#pragma once
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int mss_eventfd_make(void) { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); }

// Names the calling thread. The kernel cuts the name to 15 bytes.
static inline void mss_name_this_thread(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

// Lets the calling thread run only on one core, from 0 to 63 (sched_setaffinity(2)).
static inline int mss_pin_this_thread(int core) {
    unsigned long long cores = 1ULL << core;
    return (int)syscall(SYS_sched_setaffinity, 0, sizeof cores, &cores);
}

// Whether the system may dump this process's memory, and other processes of the user may read it.
static inline int mss_set_dumpable(int is_dumpable) { return prctl(PR_SET_DUMPABLE, is_dumpable, 0, 0, 0); }
static inline int mss_get_dumpable(void) { return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0); }

// Closes all files from this number on in the started program.
extern int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int from);

// Sets the working directory of the started program.
extern int posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t *actions, const char *folder);
