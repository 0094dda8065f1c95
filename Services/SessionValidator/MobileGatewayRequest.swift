import Credentials
import Crypto
import Foundation
import SyncModel

/// The call `com.antcloud.session.validate` in the form of an mPaaS mobile gateway (V2); pure.
struct MobileGatewayRequest {
    /// The name of the operation, the same for every tenant.
    static let operation = "com.antcloud.session.validate"
    /// The header with the result of the call behind the gateway, and its value for success.
    static let resultStatus = (name: "Result-Status", good: "1000")

    /// Header fields, spelled as the gateway expects them.
    let headers: [(String, String)]
    /// A JSON array with the call as its only element.
    let body: Data

    /// - Parameters:
    ///   - content: the JSON object with the three members.
    ///   - secret: the app's secret at the gateway; nil if the gateway checks no signatures.
    ///   - time: the time of the call.
    init(
        _ content: Data, through gateway: ValidatorForm.MobileGateway, secret: SymmetricKey? = nil, at time: WallTime
    ) {
        let opening = gateway.wrapsBody ? #"[{"_requestBody":"# : "["
        let body = Data(opening.utf8) + content + Data((gateway.wrapsBody ? "}]" : "]").utf8)
        let stamp = Self.base64Number(UInt64(max(0, time.milliseconds)))
        var headers = [
            ("Operation-Type", Self.operation), ("AppId", gateway.appID), ("WorkspaceId", gateway.workspaceID),
            ("Version", "2"), ("Ts", stamp),
        ]
        if let secret {
            // The vendor's scheme: signType 0 is MD5. The signature protects the mobile gateway, not this service.
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

    /// A number in base 64 with the gateway's digits, the highest first. This is not the Base64 encoding of bytes.
    static func base64Number(_ number: UInt64) -> String {
        var (rest, text) = (number, [UInt8]())
        repeat {
            text.append(digits[Int(rest % 64)])
            rest /= 64
        } while rest > 0
        return String(decoding: text.reversed(), as: UTF8.self)
    }
}
