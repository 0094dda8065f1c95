import Credentials
import Crypto
import Foundation
import SyncModel

/// The question `com.antcloud.session.validate` as an mPaaS mobile gateway takes it (spec V2); pure.
struct MobileGatewayQuestion {
    /// The operation that every tenant offers under this name.
    static let operation = "com.antcloud.session.validate"
    /// The header that says whether the gateway could make the call, and the value that says yes.
    static let resultStatus = (name: "Result-Status", good: "1000")

    /// Header fields, in the gateway's own spelling.
    let headers: [(String, String)]
    /// A JSON array with the question as its one element.
    let body: Data

    /// - Parameters:
    ///   - question: the JSON object of the three members.
    ///   - secret: the app's at the gateway; nil where the gateway does not check signatures, as the vendor wants it.
    ///   - time: of the call; milliseconds since 1970.
    init(
        _ question: Data, through gateway: ValidatorForm.MobileGateway, secret: SymmetricKey? = nil, at time: WallTime
    ) {
        let opening = gateway.wrapsBody ? #"[{"_requestBody":"# : "["
        let body = Data(opening.utf8) + question + Data((gateway.wrapsBody ? "}]" : "]").utf8)
        let stamp = Self.base64Number(UInt64(max(0, time.milliseconds)))
        var headers = [
            ("Operation-Type", Self.operation), ("AppId", gateway.appID), ("WorkspaceId", gateway.workspaceID),
            ("Version", "2"), ("Ts", stamp),
        ]
        if let secret {
            // The vendor's own scheme, whose signType 0 is MD5; what it protects is the gateway, not us.
            var hash = Insecure.MD5()
            let text = "Operation-Type=\(Self.operation)&Request-Data=\(body.base64EncodedString())&Ts=\(stamp)"
            hash.update(data: Data(text.utf8))
            secret.withUnsafeBytes { hash.update(bufferPointer: $0) }
            headers += [("signType", "0"), ("Sign", HexText.of(hash.finalize()))]
        }
        self.headers = headers
        self.body = body
    }

    private static let digits = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+/".utf8)

    /// A number in base 64 with the gateway's digits, the highest first; not the encoding of bytes of that name.
    static func base64Number(_ number: UInt64) -> String {
        var (rest, text) = (number, [UInt8]())
        repeat {
            text.append(digits[Int(rest % 64)])
            rest /= 64
        } while rest > 0
        return String(decoding: text.reversed(), as: UTF8.self)
    }
}
