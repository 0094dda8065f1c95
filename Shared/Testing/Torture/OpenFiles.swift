import ArgumentParser
import Glibc

/// The limit of open files.
enum OpenFiles {
    /// Raises the limit of the process to `count` if it is lower.
    ///
    /// - Throws: `ValidationError` if the hard limit is lower.
    static func raise(to count: Int) throws {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        guard limit.rlim_cur < count else { return }
        guard limit.rlim_max >= count else {
            throw ValidationError(
                "\(count) open files are needed, \(limit.rlim_max) are allowed: raise the limit (ulimit -Hn), or use "
                    + "fewer devices")
        }
        limit.rlim_cur = rlim_t(count)
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
}
