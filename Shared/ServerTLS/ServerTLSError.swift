/// Why certificate files are not usable, and what to do about it.
package struct ServerTLSError: Error, Hashable, CustomStringConvertible {
    package let description: String

    init(_ description: String) { self.description = description }
}
