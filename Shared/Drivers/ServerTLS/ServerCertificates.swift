package import Logging
import Metrics
package import NIOSSL
import ServiceLifecycle
import Synchronization

/// The TLS context of one listening port. It is read from files and replaced when they change.
///
/// New connections use the new certificate; open connections keep the old one. Unusable files change nothing. The gauge
/// `mss_tls_certificate_expiry_seconds` is the end of the certificate in force, in seconds since 1970. A process has at
/// most one such port.
package final class ServerCertificates: Service {
    private struct State {
        var identity: ServerIdentity
        /// The content that was checked last, usable or not, so that a fault is logged once.
        var seen: Result<CertificateFiles.Content, ServerTLSError>
    }

    /// The interval between checks of the files.
    private static let interval = Duration.seconds(2)

    private let files: CertificateFiles
    private let applicationProtocols: [String]
    private let logger: Logger
    private let expiry: Gauge
    private let state: Mutex<State>

    /// Reads the files.
    ///
    /// - Parameters:
    ///   - applicationProtocols: offered in the handshake (ALPN).
    /// - Throws: when the files are not usable.
    package init(
        _ files: CertificateFiles, applicationProtocols: [String], logger: Logger
    ) throws(ServerTLSError) {
        let content = try files.read()
        let identity = try ServerIdentity(content, applicationProtocols: applicationProtocols)
        self.files = files
        self.applicationProtocols = applicationProtocols
        self.logger = logger
        expiry = Gauge(label: "tls_certificate_expiry_seconds")
        state = Mutex(State(identity: identity, seen: .success(content)))
        announce(identity)
    }

    /// The context for new connections.
    package var context: NIOSSLContext { state.withLock { $0.identity.context } }

    /// Checks the files every two seconds, until graceful shutdown.
    package func run() async throws {
        try? await cancelWhenGracefulShutdown {
            while true {
                try await Task.sleep(for: Self.interval)
                self.look()
            }
        }
    }

    /// Applies the files if they have changed and are usable.
    func look() {
        let found = Result { () throws(ServerTLSError) in try files.read() }
        let taken = state.withLock { state -> Result<ServerIdentity, ServerTLSError>? in
            guard found != state.seen else { return nil }
            state.seen = found
            let made = found.flatMap { content in
                Result { () throws(ServerTLSError) in
                    try ServerIdentity(content, applicationProtocols: applicationProtocols)
                }
            }
            if case .success(let identity) = made { state.identity = identity }
            return made
        }
        switch taken {
        case .success(let identity): announce(identity)
        case .failure(let error):
            logger.error(
                "new certificate files are not usable; the previous certificate stays in force",
                metadata: ["file": "\(files.certificateFile)", "error": "\(error)"])
        case nil: break
        }
    }

    private func announce(_ identity: ServerIdentity) {
        expiry.record(identity.expiry)
        logger.info(
            "a certificate is in force", metadata: ["file": "\(files.certificateFile)", "ends": "\(identity.expiry)"])
    }
}
