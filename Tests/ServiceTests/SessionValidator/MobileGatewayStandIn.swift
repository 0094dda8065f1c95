import Crypto
import Foundation
import Hummingbird
import Logging
import NIOCore
import TestSupport

/// A stand-in for an mPaaS mobile gateway in front of a tenant (V2). It accepts only calls in the form that the vendor
/// describes, and names the fault of another call in `Result-Status`.
struct MobileGatewayStandIn: Sendable {
    /// The values of `Result-Status`.
    enum Status: String {
        case success = "1000"
        case illegalArgument = "2000"
        case noSuchOperation = "3000"
        case noRequestData = "3001"
        case wrongRequestData = "3002"
        case wrongSignature = "7001"
        case wrongTime = "7002"
    }

    /// The request as the tenant's service receives it.
    private struct Question: Decodable {
        let instanceId: String
        let userId: String
        let sessionId: String
    }

    private struct Wrapped: Decodable {
        let _requestBody: Question
    }

    var appID = "APP"
    var workspaceID = "space"
    /// Whether the operation has its one argument in `_requestBody`.
    var wrapsBody = false
    /// The app's secret. A nil value means: calls are not signed.
    var secret: String?

    /// Serves on a free port while the body runs. Sessions that begin with `bad` are invalid.
    func serve(_ body: @Sendable (_ url: String) async throws -> Void) async throws {
        let router = Router()
        router.post("/mgw.htm") { request, _ in
            let data = try await request.body.collect(upTo: 65_536)
            return answer(request.headers, Data(data.readableBytesView))
        }
        let (ports, listening) = AsyncStream.makeStream(of: Int.self)
        let application = Application(
            router: router, configuration: .init(address: .hostname("127.0.0.1", port: 0)),
            onServerRunning: { channel in listening.yield(channel.localAddress?.port ?? 0) },
            logger: Logger(label: "gateway") { _ in SwiftLogNoOpLogHandler() })
        try await whileRunning(application) {
            var iterator = ports.makeAsyncIterator()
            let port = try requireValue(await iterator.next(), "the gateway's port")
            try await body("http://127.0.0.1:\(port)/mgw.htm")
        }
    }

    private func answer(_ fields: HTTPFields, _ body: Data) -> Response {
        let (status, text) = judge(fields, body)
        var headers = HTTPFields()
        if let name = HTTPFields.Element.Name("Result-Status") { headers[name] = status.rawValue }
        // The gateway also reports its own errors with status 200.
        return Response(status: .ok, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
    }

    private func judge(_ fields: HTTPFields, _ body: Data) -> (Status, String) {
        func field(_ name: String) -> String? { HTTPFields.Element.Name(name).flatMap { fields[$0] } }
        let operation = "com.antcloud.session.validate"
        guard field("Operation-Type") == operation else { return (.noSuchOperation, "") }
        guard field("AppId") == appID, field("WorkspaceId") == workspaceID, field("Version") == "2",
            field("Content-Type") == "application/json"
        else { return (.illegalArgument, "") }
        guard let stamp = field("Ts"), let time = Self.milliseconds(stamp),
            abs(Date.now.timeIntervalSince1970 * 1_000 - Double(time)) < 300_000
        else { return (.wrongTime, "") }
        if let secret {
            let text = "Operation-Type=\(operation)&Request-Data=\(body.base64EncodedString())&Ts=\(stamp)\(secret)"
            let sign = Insecure.MD5.hash(data: Data(text.utf8)).map { String(format: "%02x", $0) }.joined()
            guard field("signType") == "0", field("Sign") == sign else { return (.wrongSignature, "") }
        }
        guard !body.isEmpty else { return (.noRequestData, "") }
        let question: Question?
        if wrapsBody {
            question =
                (try? JSONDecoder().decode([Wrapped].self, from: body)).flatMap { $0.count == 1 ? $0[0] : nil }?
                ._requestBody
        } else {
            question = (try? JSONDecoder().decode([Question].self, from: body)).flatMap { $0.count == 1 ? $0[0] : nil }
        }
        guard let question, !question.instanceId.isEmpty, !question.userId.isEmpty else {
            return (.wrongRequestData, "")
        }
        let isValid = !question.sessionId.hasPrefix("bad")
        // Gateways return the service's result as text.
        let result = #"{\"sid\":\"\#(question.sessionId)\",\"valid\":\#(isValid)}"#
        return (.success, #"{"resultCode":"OK","success":true,"result":"\#(result)"}"#)
    }

    /// Parses `Ts`: digits 0-9A-Za-z+/ of base 64, the most significant first.
    private static func milliseconds(_ text: String) -> Int64? {
        guard !text.isEmpty, text.count <= 10 else { return nil }
        return text.utf8.reduce(0) { sum, byte -> Int64? in
            let digit: Int64? =
                switch byte {
                case 0x30...0x39: Int64(byte) - 0x30
                case 0x41...0x5a: Int64(byte) - 0x41 + 10
                case 0x61...0x7a: Int64(byte) - 0x61 + 36
                case 0x2b: 62
                case 0x2f: 63
                default: nil
                }
            return sum.flatMap { sum in digit.map { sum * 64 + $0 } }
        }
    }
}
