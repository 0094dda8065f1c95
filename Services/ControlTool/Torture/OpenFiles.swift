import ArgumentParser
import Glibc

/// How many files the process may have open.
enum OpenFiles {
    /// Raises the limit as far as it takes.
    ///
    /// - Throws: when the system does not allow so many.
    static func raise(to count: Int) throws {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        guard limit.rlim_cur < count else { return }
        guard limit.rlim_max >= count else {
            throw ValidationError(
                "\(count) open files are needed and \(limit.rlim_max) allowed: raise the limit (ulimit -Hn), or take "
                    + "fewer devices")
        }
        limit.rlim_cur = rlim_t(count)
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
}
