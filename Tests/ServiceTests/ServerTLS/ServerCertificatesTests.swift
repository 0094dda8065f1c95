import Foundation
import Logging
import TestSupport
import Testing

@testable import ServerTLS

@Suite("Certificates of a listening port")
struct ServerCertificatesTests {
    private static let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    private func files(_ certificates: TestCertificates, _ name: TestCertificates.Name) -> CertificateFiles {
        CertificateFiles(
            certificateFile: certificates.certificateFile(name), privateKeyFile: certificates.privateKeyFile(name))
    }

    /// The fault of the files. A nil value means: a port can be opened with them.
    private func problem(_ files: CertificateFiles) -> String? {
        do throws(ServerTLSError) {
            try files.check()
            return nil
        } catch {
            return error.description
        }
    }

    @Test("SEC1: certificate files that callers would refuse are named, with the remedy")
    func problems() async throws {
        try await TestCertificates.with { certificates in
            #expect(problem(files(certificates, .server)) == nil)
            #expect(problem(files(certificates, .expired))?.contains("renew it") == true)
            let mixed = CertificateFiles(
                certificateFile: certificates.certificateFile(.server),
                privateKeyFile: certificates.privateKeyFile(.renewed))
            #expect(problem(mixed)?.contains("do not fit together") == true)
            var missing = files(certificates, .server)
            missing.clientAuthorityFile = "/nonexistent.pem"
            #expect(problem(missing)?.contains("/nonexistent.pem") == true)
            missing.clientAuthorityFile = certificates.privateKeyFile(.server)
            #expect(problem(missing)?.contains("authority") == true)
            missing.certificateFile = certificates.privateKeyFile(.server)
            #expect(problem(missing)?.contains("certificate") == true)
        }
    }

    @Test("SEC1: complete new files are used; broken, half-written and expired ones change nothing")
    func rotation() async throws {
        try await TestCertificates.with { certificates in
            let served = files(certificates, .server)
            let port = try ServerCertificates(
                served, applicationProtocols: [], logger: Self.quiet)
            let first = ObjectIdentifier(port.context)
            port.look()
            #expect(ObjectIdentifier(port.context) == first, "nothing has changed")

            let whole = try Data(contentsOf: URL(fileURLWithPath: certificates.certificateFile(.renewed)))
            let file = URL(fileURLWithPath: served.certificateFile)
            for broken in [Data(), whole.prefix(whole.count / 2), Data("no PEM".utf8), whole] {
                // The last certificate is complete, but its key is missing.
                try broken.write(to: file)
                port.look()
                #expect(ObjectIdentifier(port.context) == first)
            }
            try certificates.install(.expired, over: .server)
            port.look()
            #expect(ObjectIdentifier(port.context) == first)
            try FileManager.default.removeItem(at: file)
            port.look()
            #expect(ObjectIdentifier(port.context) == first)

            try certificates.install(.renewed, over: .server)
            port.look()
            #expect(ObjectIdentifier(port.context) != first)
        }
    }
}
