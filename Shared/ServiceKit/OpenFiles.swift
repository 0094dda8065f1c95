import Glibc

/// How many files and connections this process may have open.
package enum OpenFiles {
    /// Raises the limit to what the system lets this user have: connections are our trade, and the usual 1,024 are
    /// for programs that wait for them with `select`. A limit that cannot be raised stays.
    static func raiseLimit() {
        var limits = Self.limits
        guard limits.rlim_cur < limits.rlim_max else { return }
        limits.rlim_cur = limits.rlim_max
        setrlimit(resource, &limits)
    }

    /// The limit in force; `Int.max` when there is none.
    package static var limit: Int { Int(clamping: limits.rlim_cur) }

    /// How many are open; nil when the system does not tell.
    static var count: Int? {
        guard let folder = opendir("/proc/self/fd") else { return nil }
        defer { closedir(folder) }
        var count = 0
        while readdir(folder) != nil { count += 1 }
        // The folder itself, its parent, and the descriptor that it was read by.
        return count - 3
    }

    private static var resource: __rlimit_resource_t { __rlimit_resource_t(RLIMIT_NOFILE.rawValue) }

    private static var limits: rlimit {
        var limits = rlimit()
        getrlimit(resource, &limits)
        return limits
    }
}
