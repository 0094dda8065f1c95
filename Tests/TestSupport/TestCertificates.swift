package import Foundation

/// Certificate authorities and certificates of one test, correct and wrong ones. OpenSSL creates them in a new folder.
package struct TestCertificates: Sendable {
    /// A certificate and its key.
    package enum Name: String, Sendable {
        /// A certificate for localhost and 127.0.0.1.
        case server
        /// A newer certificate for the same names.
        case renewed
        /// A certificate for another name.
        case misnamed
        /// A certificate that expired yesterday.
        case expired
        /// A certificate of an authority that no process trusts.
        case foreign
        /// A client certificate of the trusted authority.
        case client
        /// A client certificate of another authority.
        case foreignClient
    }

    package let folder: URL

    /// Creates all certificates.
    package init() async throws {
        folder = URL(fileURLWithPath: NSTemporaryDirectory()).appending(path: "mss-tls-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let outcome = try await Command.run(
            URL(fileURLWithPath: "/bin/bash"), ["-ec", Self.script, "certificates", folder.path],
            environment: ["PATH": ProcessInfo.processInfo.environment["PATH"] ?? ""])
        guard outcome.status == 0 else { throw Failure("openssl made no certificates: \(outcome.output)") }
    }

    /// Runs the body with certificates and removes them afterwards.
    package static func with(_ body: (TestCertificates) async throws -> Void) async throws {
        let certificates = try await TestCertificates()
        defer { try? FileManager.default.removeItem(at: certificates.folder) }
        try await body(certificates)
    }

    /// The authority of the correct certificates.
    package var authorityFile: String { folder.appending(path: "ca.pem").path }
    /// The authority of the foreign certificates.
    package var otherAuthorityFile: String { folder.appending(path: "other-ca.pem").path }

    package func certificateFile(_ name: Name) -> String { folder.appending(path: "\(name.rawValue).pem").path }
    package func privateKeyFile(_ name: Name) -> String { folder.appending(path: "\(name.rawValue).key").path }

    /// Replaces a certificate and its key by others.
    package func install(_ name: Name, over other: Name) throws {
        for ending in ["pem", "key"] {
            let data = try Data(contentsOf: folder.appending(path: "\(name.rawValue).\(ending)"))
            try data.write(to: folder.appending(path: "\(other.rawValue).\(ending)"))
        }
    }

    private static let script = """
        cd "$1"
        umask 077
        authority() {
            openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"
            openssl req -x509 -new -key "$1.key" -days 30 -subj "/CN=MSS test $1" -out "$1.pem"
            mkdir "$1.d"
            : > "$1.d/index"
            printf '[ca]\\ndefault_ca = it\\n[it]\\ndatabase = %s.d/index\\nnew_certs_dir = %s.d\\nrand_serial = yes\\n' \\
                "$1" "$1" > "$1.d/conf"
            printf 'unique_subject = no\\npolicy = any\\ndefault_md = sha256\\n[any]\\ncommonName = supplied\\n' \\
                >> "$1.d/conf"
        }
        certificate() { # NAME AUTHORITY SAN USE FROM TO
            openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"
            openssl req -new -key "$1.key" -subj "/CN=$1" -out "$1.csr"
            printf 'subjectAltName=%s\\nextendedKeyUsage=%s\\n' "$3" "$4" > "$1.ext"
            openssl ca -batch -notext -config "$2.d/conf" -cert "$2.pem" -keyfile "$2.key" -in "$1.csr" \\
                -extfile "$1.ext" -startdate "$5" -enddate "$6" -out "$1.pem"
        }
        from=$(date -u -d '-3 days' +%Y%m%d%H%M%SZ)
        yesterday=$(date -u -d '-1 day' +%Y%m%d%H%M%SZ)
        later=$(date -u -d '+20 days' +%Y%m%d%H%M%SZ)
        here=DNS:localhost,IP:127.0.0.1
        authority ca
        authority other-ca
        certificate server ca "$here" serverAuth "$from" "$later"
        certificate renewed ca "$here" serverAuth "$from" "$later"
        certificate misnamed ca DNS:elsewhere.example serverAuth "$from" "$later"
        certificate expired ca "$here" serverAuth "$from" "$yesterday"
        certificate foreign other-ca "$here" serverAuth "$from" "$later"
        certificate client ca DNS:client clientAuth "$from" "$later"
        certificate foreignClient other-ca DNS:client clientAuth "$from" "$later"
        # For servers that run as another user.
        chmod 644 *.pem
        """
}
