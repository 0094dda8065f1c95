import Glibc

/// The limit of open files and connections of this process.
package enum OpenFiles {
    /// Raises the soft limit to the hard limit. The usual soft limit of 1,024 is for programs that use `select`; this
    /// process needs a file for each connection. On failure the limit stays.
    static func raiseLimit() {
        var limits = Self.limits
        guard limits.rlim_cur < limits.rlim_max else { return }
        limits.rlim_cur = limits.rlim_max
        setrlimit(resource, &limits)
    }

    /// The soft limit; `Int.max` without one.
    package static var limit: Int { Int(clamping: limits.rlim_cur) }

    /// The number of open files; nil if the system does not report it.
    static var count: Int? {
        guard let folder = opendir("/proc/self/fd") else { return nil }
        defer { closedir(folder) }
        var count = 0
        while readdir(folder) != nil { count += 1 }
        // Without the entries "." and ".." and without the descriptor of this listing.
        return count - 3
    }

    private static var resource: __rlimit_resource_t { __rlimit_resource_t(RLIMIT_NOFILE.rawValue) }

    private static var limits: rlimit {
        var limits = rlimit()
        getrlimit(resource, &limits)
        return limits
    }
}
