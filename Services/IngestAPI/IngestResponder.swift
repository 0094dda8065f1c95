import BackendCalls
import Hummingbird
import Logging
import NIOCore
import NIOHTTP1
import ServiceKit
import SyncModel

/// The HTTP face of the API: what the head decides, the body within its bound, the answer with its request id.
struct IngestResponder: HTTPResponder {
    typealias Context = BasicRequestContext

    let admission: RequestAdmission
    let intake: PushIntake
    let quotas: PushQuotas
    let operations: OperationIntake
    var bodies = BodyBudget()
    let health: HealthState
    let metrics: IngestMetrics
    let logger: Logger

    /// Throws nothing: what the server made of an error would not have the API's form.
    func respond(to request: Request, context: Context) async -> Response {
        let start = ContinuousClock.now
        let requestID = RequestName.make()
        let call = Result { () throws(HeadRefusal) in try RequestRules.call(of: request.head) }
        if case .success(.description) = call { return description(requestID) }
        var answer = await answer(to: request, call)
        // A caller that goes on over this connection would meet a closed one.
        if health.isDraining { answer.closesConnection = true }
        metrics.answered(answer)
        metrics.took(.now - start)
        if answer.content.code == .systemError, answer.status == .ok {
            logger.warning("A push ended with an unknown outcome", metadata: ["request_id": "\(requestID)"])
        }
        let response = response(answer, requestID)
        return request.head.method == .head ? response.createHeadResponse() : response
    }

    private func answer(to request: Request, _ call: Result<APICall, HeadRefusal>) async -> HTTPAnswer {
        do throws(HeadRefusal) {
            let call = try call.get()
            guard !health.isDraining else {
                throw HeadRefusal(answer: .unavailable("This process is about to stop; repeat the call."))
            }
            let query = RequestQuery(request.head)
            let headers = try admission.headers(of: request.head, query)
            var held = 0
            defer { bodies.giveBack(held) }
            let body = try await body(of: request, for: call, taking: &held)
            let admitted = try await admission.admit(request.head, headers, query, body: body)
            var answer = HTTPAnswer(await answer(call, query, body, admitted.caller))
            if answer.rate == nil { answer.rate = admitted.rate }
            if answer.rate == nil { answer.rate = await quotas.note(of: admitted.caller) }
            return answer
        } catch {
            return error.answer
        }
    }

    private func answer(
        _ call: APICall, _ query: RequestQuery, _ body: [UInt8], _ caller: APICaller?
    ) async -> APIAnswer {
        let instanceID = query["instanceId"]
        let paying: PushIntake.Paying = { count, make in await quotas.paid(count, by: caller, make) }
        do throws(PushRefusal) {
            let isDryRun = try query.isDryRun
            switch call {
            case .push(let scope):
                return await intake.answer(
                    scope: scope, instanceID: instanceID, body: body, isDryRun: isDryRun, paying: paying)
            case .batch:
                return await intake.answerBatch(
                    instanceID: instanceID, body: body, isDryRun: isDryRun, paying: paying)
            case .recall: return await operations.recall(instanceID: instanceID, body: body)
            case .revoke: return await operations.revoke(instanceID: instanceID, body: body)
            case .trace, .description: return await operations.trace { query[$0] }
            }
        } catch {
            return .result(error.code, detail: error.detail)
        }
    }

    private func description(_ requestID: String) -> Response {
        var headers: HTTPFields = [.contentType: "application/json;charset=UTF-8"]
        if let name = HTTPFields.Element.Name("X-Request-Id") { headers[name] = requestID }
        return Response(
            status: .ok, headers: headers, body: .init(byteBuffer: ByteBuffer(bytes: PackageResources.openapi_json)))
    }

    /// The body, to its end.
    ///
    /// - Parameter held: what it has taken of the budget, also when this throws.
    private func body(
        of request: Request, for call: APICall, taking held: inout Int
    ) async throws(HeadRefusal) -> [UInt8] {
        var body: [UInt8] = []
        do {
            for try await part in request.body {
                // As it arrives: who only says that much will come keeps nobody out.
                guard bodies.take(part.readableBytes) else { throw HeadRefusal(answer: Self.full) }
                held += part.readableBytes
                body.append(contentsOf: part.readableBytesView)
                if body.count > call.bodyBytes { break }
            }
        } catch let error as HeadRefusal {
            throw error
        } catch {
            // The guard has answered; a body in chunks that is cut may look whole and must not be served.
            throw HeadRefusal(answer: .refusal(.badRequest, "The body did not come to its end; repeat the call."))
        }
        guard body.count <= call.bodyBytes else { throw HeadRefusal(answer: RequestRules.bodyTooLong(of: call)) }
        return body
    }

    /// The rest of the body is not read.
    private static var full: HTTPAnswer {
        var answer = HTTPAnswer.unavailable("Too many bodies are being read here; repeat the call.")
        answer.closesConnection = true
        return answer
    }

    private func response(_ answer: HTTPAnswer, _ requestID: String) -> Response {
        var headers = HTTPFields()
        for (name, value) in answer.headers(requestID: requestID) {
            if let name = HTTPFields.Element.Name(name) { headers[name] = value }
        }
        if answer.closesConnection { headers[.connection] = "close" }
        return Response(
            status: .init(code: Int(answer.status.code), reasonPhrase: answer.status.reasonPhrase), headers: headers,
            body: .init(byteBuffer: ByteBuffer(string: answer.content.body(requestID: requestID))))
    }
}
