/* A wall clock that can be set for some programs alone: preload it, and write seconds, an int64, into the file that
 * CLOCK_OFFSET_FILE names. The monotonic clock goes on as it does when a machine's time is set. Waits that end at a
 * time of the wall clock end at that of the set one (those that have begun are not woken by a change).
 *
 *     cc -shared -fPIC -O2 -o clock.so clock.c
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t none = 0;
static volatile const int64_t *offset = &none;

__attribute__((constructor)) static void begin(void) {
    const char *name = getenv("CLOCK_OFFSET_FILE");
    int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    void *map = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
    if (map != MAP_FAILED) offset = map;
    if (file >= 0) close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real ? real(clock, now) : (int)syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += *offset;
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec found;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &found)) return -1;
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *place) {
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    if (place) *place = found.tv_sec;
    return found.tv_sec;
}

/* Times of the monotonic clock count from the machine's start: they are small, and stay as they are. */
static struct timespec really(const struct timespec *end) {
    struct timespec found = *end;
    if (found.tv_sec > 1000000000) found.tv_sec -= *offset;
    return found;
}

int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *end) {
    static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    if (!real)
        real = (int (*)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *))dlvsym(
            RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    struct timespec then = really(end);
    return real(cond, mutex, &then);
}

int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *end) {
    static int (*real)(pthread_mutex_t *, const struct timespec *);
    if (!real) real = (int (*)(pthread_mutex_t *, const struct timespec *))dlsym(RTLD_NEXT, "pthread_mutex_timedlock");
    struct timespec then = really(end);
    return real(mutex, &then);
}

int sem_timedwait(sem_t *semaphore, const struct timespec *end) {
    static int (*real)(sem_t *, const struct timespec *);
    if (!real) real = (int (*)(sem_t *, const struct timespec *))dlsym(RTLD_NEXT, "sem_timedwait");
    struct timespec then = really(end);
    return real(semaphore, &then);
}
