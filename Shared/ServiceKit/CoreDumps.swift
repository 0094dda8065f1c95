import CLinux
import Glibc

/// What the system writes to disk when this process crashes.
package enum CoreDumps {
    /// Nothing: memory holds passwords, keys and payloads (reliability SEC16). Other processes of the same user cannot
    /// look into it either.
    package static func switchOff() {
        var none = rlimit(rlim_cur: 0, rlim_max: 0)
        setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
        mss_set_dumpable(0)
    }

    /// Whether the system would write this process's memory, as far as its own flag says.
    static var arePossible: Bool { mss_get_dumpable() != 0 }
}
