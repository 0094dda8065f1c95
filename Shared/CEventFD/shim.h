// eventfd and its constants, which the Glibc overlay does not show.
#pragma once
#include <sys/eventfd.h>

static inline int mss_eventfd_make(void) { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); }
