// What the Glibc overlay does not show: eventfd with its constants, and the name of a thread.
#pragma once
#include <sys/eventfd.h>
#include <sys/prctl.h>

static inline int mss_eventfd_make(void) { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); }

// Names the calling thread; cut to 15 bytes by the kernel.
static inline void mss_name_this_thread(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }
