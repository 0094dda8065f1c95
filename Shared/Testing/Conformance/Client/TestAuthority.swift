import ChildProcesses
import Foundation
import Glibc

/// Certificate authorities and certificates of one run, created by openssl in a folder.
struct TestAuthority: Sendable {
    /// The certificate of a gateway.
    enum Certificate: String, Sendable {
        /// Signed by the client's trusted authority, for 127.0.0.1 and localhost.
        case right = "server"
        /// Signed by another authority.
        case foreign
        /// Signed by the trusted authority, for another name.
        case misnamed
    }

    private let folder: URL

    /// The client's trusted authority.
    var authorityFile: String { folder.appending(path: "ca.pem").path }

    func chainFile(_ certificate: Certificate) -> String { folder.appending(path: "\(certificate.rawValue).pem").path }
    func keyFile(_ certificate: Certificate) -> String { folder.appending(path: "\(certificate.rawValue).key").path }

    /// Creates the certificates.
    ///
    /// - Throws: `NotSupported` if openssl fails.
    init(in folder: URL) async throws {
        self.folder = folder
        let script = folder.appending(path: "certificates.sh")
        try Self.script.write(to: script, atomically: true, encoding: .utf8)
        let log = folder.appending(path: "openssl.log")
        let process = try ChildProcess(
            ["sh", "-e", script.path, folder.path], output: .discarded, errors: .file(log))
        guard await process.ends(within: .seconds(30)), process.status == 0 else {
            process.signal(SIGKILL)
            let words = (try? String(contentsOf: log, encoding: .utf8)) ?? ""
            throw NotSupported("openssl could not make certificates: \(words.suffix(300))")
        }
    }

    private static let script = """
        cd "$1"
        umask 077
        authority() {
            openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"
            openssl req -x509 -new -key "$1.key" -days 2 -subj "/CN=MSS conformance $1" -out "$1.pem"
        }
        certificate() {
            openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"
            openssl req -new -key "$1.key" -subj "/CN=$1" -out "$1.csr"
            printf 'subjectAltName=%s\\nextendedKeyUsage=serverAuth\\n' "$3" > "$1.ext"
            openssl x509 -req -in "$1.csr" -CA "$2.pem" -CAkey "$2.key" -CAcreateserial -days 2 -extfile "$1.ext" \\
                -out "$1.pem"
        }
        authority ca
        authority other-ca
        certificate server ca DNS:localhost,IP:127.0.0.1
        certificate foreign other-ca DNS:localhost,IP:127.0.0.1
        certificate misnamed ca DNS:elsewhere.example
        """
}
