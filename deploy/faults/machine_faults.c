/* A machine whose wall clock is wrong and whose disk is slow: LD_PRELOAD this into a process, with MACHINE_FAULTS
 * naming a file of 16 bytes: two 64-bit numbers of this machine's byte order, which may change at any time. The first
 * says how many milliseconds the wall clock is ahead (below 0: behind), the second how many every fsync and fdatasync
 * takes longer. The file must be there when the process starts, is written in place, and never becomes shorter
 * (machine-faults.sh does all that). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct faults {
    _Atomic int64_t clock_ms, sync_ms;
};

static struct faults none;
static struct faults *_Atomic faults = &none;

__attribute__((constructor)) static void open_file(void) {
    const char *path = getenv("MACHINE_FAULTS");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *shared = mmap(NULL, sizeof none, PROT_READ, MAP_SHARED, file, 0);
    if (shared != MAP_FAILED) atomic_store(&faults, shared);
    close(file);
}

static struct timespec shifted(struct timespec real, int sign) {
    int64_t ms = sign * atomic_load_explicit(&atomic_load(&faults)->clock_ms, memory_order_relaxed);
    int64_t ns = real.tv_nsec + ms % 1000 * 1000000;
    real.tv_sec += ms / 1000 + (ns >= 1000000000) - (ns < 0);
    real.tv_nsec = ns - 1000000000 * ((ns >= 1000000000) - (ns < 0));
    return real;
}

/* ---- the wall clock ---------------------------------------------------------------------------------------------- */

static int real_clock(clockid_t clock, struct timespec *now) {
    static int (*_Atomic found)(clockid_t, struct timespec *);
    int (*call)(clockid_t, struct timespec *) = atomic_load_explicit(&found, memory_order_relaxed);
    if (!call) {
        call = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
        atomic_store_explicit(&found, call, memory_order_relaxed);
    }
    return call(clock, now);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = real_clock(clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) *now = shifted(*now, 1);
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone; /* long obsolete */
    struct timespec found;
    int failed = clock_gettime(CLOCK_REALTIME, &found);
    if (!failed) *now = (struct timeval){found.tv_sec, found.tv_nsec / 1000};
    return failed;
}

time_t time(time_t *now) {
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    if (now) *now = found.tv_sec;
    return found.tv_sec;
}

/* Who waits until an instant of the wall clock took it from the shifted one; the kernel waits by the real one. */

int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until) {
    /* glibc notes there whether the condition waits by the monotonic clock, which is not shifted. */
    if (cond->__data.__wrefs & 2) return pthread_cond_clockwait(cond, mutex, CLOCK_MONOTONIC, until);
    struct timespec real = shifted(*until, -1);
    return pthread_cond_clockwait(cond, mutex, CLOCK_REALTIME, &real);
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict until) {
    struct timespec real = shifted(*until, -1);
    return sem_clockwait(semaphore, CLOCK_REALTIME, &real);
}

/* ---- the disk ---------------------------------------------------------------------------------------------------- */

static void delay(void) {
    int64_t ms = atomic_load_explicit(&atomic_load(&faults)->sync_ms, memory_order_relaxed);
    if (ms <= 0) return;
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0) continue; /* a signal does not make a disk faster */
}

int fsync(int file) {
    delay();
    return (int)syscall(SYS_fsync, file);
}

int fdatasync(int file) {
    delay();
    return (int)syscall(SYS_fdatasync, file);
}
