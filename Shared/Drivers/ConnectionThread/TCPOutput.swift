import Glibc

/// The order to the kernel to hold output of a socket back, so that several small writes leave as one TCP segment. Each
/// segment costs a system call here and wakes the server.
package enum TCPOutput {
    /// Holds segments back until they are full, or sends the held ones (tcp(7), TCP_CORK). Has no effect on a
    /// Unix socket.
    package static func hold(_ isHeld: Bool, of descriptor: CInt) {
        var value: CInt = isHeld ? 1 : 0
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_CORK, &value, 4)
    }
}
