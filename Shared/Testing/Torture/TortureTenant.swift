import DeliveryHistory
import NIOCore
import ToolSupport

/// The tenants' endpoint for device operations in a torture run. It executes each operation once by its id. At random
/// it is slow, answers with an error, or loses the request or the response.
struct TortureTenant: Sendable {
    /// Port on the loopback address.
    let port: Int

    /// Listens until the process ends.
    static func start(_ history: TortureHistory, seed: UInt64) async throws -> TortureTenant {
        let random = SeededDraws(seed: seed ^ 0x7e4a_4217)
        let server = try await TenantServer.start { question in
            let roll = random.draw(0..<1_000)
            switch roll {
            case 0..<20: return TenantReply(isLost: true)
            case 20..<40: return TenantReply(status: 503)
            case 40..<50: return TenantReply(status: 429, retryAfter: 1)
            default: break
            }
            var reply = Self.reply(to: question, history)
            switch roll {
            case 50..<70: reply.isLost = true
            case 70..<80: reply.delay = .milliseconds(Int64(random.draw(500..<8_000)))
            default: break
            }
            return reply
        }
        return TortureTenant(port: server.port)
    }

    /// Executes an operation. A repeat gets the same reply. Some operations are refused, some replies contain a new
    /// state.
    private static func reply(to question: TenantQuestion, _ history: TortureHistory) -> TenantReply {
        let id = question.operationID
        let outcome = history.operations { checker, now in
            checker.call(
                id, by: TortureWorld.name(question.instance, question.deviceID), to: question.entityKey,
                saying: id.hasSuffix("0") ? .refused : .accepted, at: now)
        }
        if outcome == .refused { return TenantReply(status: 409, body: #"{"message":"not allowed"}"#) }
        guard "0123".contains(id.prefix(1)) else { return TenantReply() }
        let state = TortureState.json(after: id, on: question.entityKey, of: question.instance)
        return TenantReply(body: #"{"import":\#(state)}"#)
    }
}
