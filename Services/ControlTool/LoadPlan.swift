import Credentials
import MobileSync
import ServiceKit
import SyncModel

/// What a load run does; pure.
struct LoadPlan: Sendable {
    /// How pushes are paced.
    enum Pace: Sendable {
        /// Open loop: a push is due at its instant whether or not earlier ones were answered, and latency counts from
        /// that instant, so that a stall is charged to everything it delays.
        case rate(perSecond: Int)
        /// Closed loop: this many pushes are always under way, until delivered: finds the highest rate.
        case window(Int)
    }

    var instance: String
    var bizType: String
    var devices: Int
    var seconds: Int
    var pace: Pace
    var httpConnections: Int
    var payloadBytes: Int
    /// Distinguishes this run's users and thirdMsgIds from those of other runs.
    var runID: String
    /// Signs the pushes; nil: they are not signed.
    var signer: RequestSigner?
    /// Signs the devices' connects; nil: they are not signed.
    var connectSigner: ConnectSigner?

    func user(_ device: Int) -> String { "load-\(runID)-\(device)" }

    /// Whom the push goes to; a stride that is prime to most counts spreads neighbours in time.
    func device(of push: Int) -> Int { (push &* 7_919) % devices }

    /// When a push is due, from the start of the run; open loop only.
    func due(_ push: Int, perSecond: Int) -> Duration { .nanoseconds(Int64(push) * 1_000_000_000 / Int64(perSecond)) }

    /// The payload begins with the push's number, which the device reads back.
    func payload(of push: Int) -> String {
        let number = String(push)
        return number + "," + String(repeating: "x", count: max(0, payloadBytes - number.utf8.count - 1))
    }

    /// The HTTP request of a push, as a backend would send it.
    func request(_ push: Int, host: String) -> String {
        let body = """
            {"bizType":"\(bizType)","linkToken":"\(user(device(of: push)))","thirdMsgId":"\(runID)-\(push)",\
            "payload":"\(payload(of: push))"}
            """
        let target = "/webapi/sync/single?instanceId=\(instance)"
        let signature = signer?.headers(method: "POST", target: target, body: Array(body.utf8), at: .now) ?? []
        return """
            POST \(target) HTTP/1.1\r
            Host: \(host)\r
            Content-Type: application/json\r
            Content-Encoding: UTF-8\r
            Content-Length: \(body.utf8.count)\r
            \(signature.map { "\($0.name): \($0.value)\r\n" }.joined())\r
            \(body)
            """
    }
}
