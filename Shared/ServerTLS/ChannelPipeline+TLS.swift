package import NIOCore
package import NIOSSL

extension ChannelPipeline.SynchronousOperations {
    /// Puts TLS before everything that is there, with a bounded handshake.
    package func beginWithTLS(_ tls: NIOSSLContext, handshakeLimit: TimeAmount) throws {
        try addHandler(HandshakeWatch(limit: handshakeLimit), position: .first)
        try addHandler(NIOSSLServerHandler(context: tls), position: .first)
    }

    /// Ends the connection at once, with TLS or without. Closing through TLS would first wait for the other side's
    /// farewell.
    package func closePastTLS() {
        guard let tls = try? context(handlerType: NIOSSLServerHandler.self) else { return close(promise: nil) }
        tls.close(promise: nil)
    }
}
