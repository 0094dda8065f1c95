import BackendCalls
import Foundation
import Logging
import NIOCore
import NIOHTTP1
import ServiceKit
import SyncModel
import Synchronization

/// Answers the HTTP requests of the API: refuses some by their head, and performs the others when they are complete.
struct IngestResponder: Sendable {
    /// The result of a check of the head.
    enum HeadOutcome: Sendable {
        /// The body is read next.
        case request(IngestRequest)
        /// The response; the rest of the request is skipped.
        case answered(HTTPResponse)
    }

    let admission: RequestAdmission
    let intake: PushIntake
    let quotas: PushQuotas
    let operations: OperationIntake
    var bodies = BodyBudget()
    let health: HealthState
    let metrics: IngestMetrics
    let logger: Logger
    /// A nil value means: pushes are not copied to another service.
    let mirror: PushMirror?
    private let date = ResponseDate()

    init(
        admission: RequestAdmission, intake: PushIntake, quotas: PushQuotas, operations: OperationIntake,
        bodies: BodyBudget = BodyBudget(), health: HealthState, metrics: IngestMetrics, logger: Logger,
        mirror: PushMirror? = nil
    ) {
        self.admission = admission
        self.intake = intake
        self.quotas = quotas
        self.operations = operations
        self.bodies = bodies
        self.health = health
        self.metrics = metrics
        self.logger = logger
        self.mirror = mirror
    }

    /// Checks the head, and answers the request when the head is enough.
    func begin(_ head: HTTPRequestHead) -> HeadOutcome {
        let start = ContinuousClock.now
        let name = RequestName.make()
        do throws(EarlyRefusal) {
            let call = try RequestRules.call(of: head)
            if call == .description { return .answered(description(name)) }
            guard !health.isDraining else {
                throw EarlyRefusal(answer: .unavailable("This process is stopping; repeat the call."))
            }
            let query = RequestQuery(head)
            let signature = try admission.headers(of: head, query)
            return .request(
                IngestRequest(name: name, start: start, head: head, call: call, query: query, signature: signature))
        } catch {
            return .answered(response(error.answer, name, since: start, withBody: head.method != .HEAD))
        }
    }

    /// The response to a complete request; releases its body from the budget.
    func respond(to request: IngestRequest) async -> HTTPResponse {
        defer { bodies.release(request.body.count) }
        let answer = await answer(to: request)
        mirror?.enqueue(request, answer)
        return response(to: request, answer)
    }

    /// The HTTP response for an answer to a request.
    func response(to request: IngestRequest, _ answer: HTTPAnswer) -> HTTPResponse {
        response(answer, request.name, since: request.start)
    }

    private func answer(to request: IngestRequest) async -> HTTPAnswer {
        do throws(EarlyRefusal) {
            let admitted = try await admission.admit(
                request.head, request.signature, request.query, body: request.body)
            var answer = HTTPAnswer(await answer(request.call, request.query, request.body, admitted.caller))
            if answer.rate == nil { answer.rate = admitted.rate }
            if answer.rate == nil { answer.rate = await quotas.status(of: admitted.caller) }
            return answer
        } catch {
            return error.answer
        }
    }

    private func answer(
        _ call: APICall, _ query: RequestQuery, _ body: [UInt8], _ caller: APICaller?
    ) async -> APIAnswer {
        let instanceID = query["instanceId"]
        let paying: PushIntake.Paying = { count, make in await quotas.charge(count, to: caller, make) }
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
            return error.answer
        }
    }

    private func description(_ name: String) -> HTTPResponse {
        response(
            .ok, [("Content-Type", "application/json;charset=UTF-8"), ("X-Request-Id", name)],
            ByteBuffer(bytes: PackageResources.openapi_json))
    }

    private func response(
        _ answer: HTTPAnswer, _ name: String, since start: ContinuousClock.Instant, withBody: Bool = true
    ) -> HTTPResponse {
        metrics.answered(answer)
        metrics.took(.now - start)
        if answer.content.code == .systemError {
            logger.warning(
                "the outcome of a call is unknown: its caller is told to repeat it", metadata: ["request_id": "\(name)"]
            )
        }
        var headers = answer.headers(requestID: name)
        // A draining process closes its connections, so the caller must not send another request here.
        if answer.closesConnection || health.isDraining { headers.append(("Connection", "close")) }
        let body = ByteBuffer(string: answer.content.body(requestID: name))
        return response(answer.status, headers, body, withBody: withBody)
    }

    private func response(
        _ status: HTTPResponseStatus, _ fields: [(name: String, value: String)], _ body: ByteBuffer,
        withBody: Bool = true
    ) -> HTTPResponse {
        var headers = HTTPHeaders(fields)
        headers.add(name: "Content-Length", value: String(body.readableBytes))
        headers.add(name: "Date", value: date.now)
        return HTTPResponse(
            head: HTTPResponseHead(version: .http1_1, status: status, headers: headers), body: withBody ? body : nil)
    }
}

/// The Date field of responses. It is formatted once a second, not for each response.
private final class ResponseDate: Sendable {
    private let last = Mutex((second: -1, text: ""))

    /// The field's current value.
    var now: String {
        let second = time(nil)
        return last.withLock { last in
            if last.second != second { last = (second, WallTime(milliseconds: Int64(second) * 1_000).httpDate) }
            return last.text
        }
    }
}
