package import Logging
import Metrics
package import NIOSSL
import ServiceLifecycle
import Synchronization

/// The TLS of one listening port, taken from files and taken anew when they change.
///
/// New connections get the new certificate; those that are open keep theirs. Files that do not make a usable whole
/// change nothing. The gauge `mss_tls_certificate_expiry_seconds` is the end of the certificate in force, in seconds
/// since 1970; a process has one such port at the most.
package final class ServerCertificates: Service {
    private struct State {
        var identity: ServerIdentity
        /// What was looked at last, usable or not: a broken file is complained of once.
        var seen: Result<CertificateFiles.Content, ServerTLSError>
    }

    /// How soon a change of the files is seen.
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
    /// - Throws: the files are not usable.
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

    /// For connections that begin now.
    package var context: NIOSSLContext { state.withLock { $0.identity.context } }

    /// Looks at the files every two seconds, until graceful shutdown.
    package func run() async throws {
        try? await cancelWhenGracefulShutdown {
            while true {
                try await Task.sleep(for: Self.interval)
                self.look()
            }
        }
    }

    /// Takes the files over if they have changed and are usable.
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
                "new certificate files are not usable; the certificate before stays in force",
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
