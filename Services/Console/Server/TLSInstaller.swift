import NIOCore
import ServerTLS

/// Puts TLS before everything else of a connection, with the certificate that is in force when it begins.
final class TLSInstaller: ChannelInboundHandler, RemovableChannelHandler, Sendable {
    typealias InboundIn = NIOAny

    private static let handshakeLimit = TimeAmount.seconds(10)

    private let certificates: ServerCertificates

    init(certificates: ServerCertificates) { self.certificates = certificates }

    func handlerAdded(context: ChannelHandlerContext) {
        do {
            try context.pipeline.syncOperations.beginWithTLS(
                certificates.context, handshakeLimit: Self.handshakeLimit)
        } catch {
            // Without TLS the connection must not exist.
            context.close(promise: nil)
        }
    }
}
