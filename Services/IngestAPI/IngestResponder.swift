import BackendCalls
import Logging
import NIOCore
import NIOHTTP1
import ServiceKit
import SyncModel

/// The HTTP face of the API: what the head decides, the answer to a whole request with its name.
struct IngestResponder: Sendable {
    /// What becomes of a request by its head.
    enum Beginning: Sendable {
        case request(IngestRequest)
        /// The rest of it is skipped.
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
    /// Nil: nobody else gets what is pushed here.
    let mirror: Mirror?
    private let date = HTTPDate()

    init(
        admission: RequestAdmission, intake: PushIntake, quotas: PushQuotas, operations: OperationIntake,
        bodies: BodyBudget = BodyBudget(), health: HealthState, metrics: IngestMetrics, logger: Logger,
        mirror: Mirror? = nil
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

    /// What the head alone decides.
    func begin(_ head: HTTPRequestHead) -> Beginning {
        let start = ContinuousClock.now
        let name = RequestName.make()
        do throws(HeadRefusal) {
            let call = try RequestRules.call(of: head)
            if call == .description { return .answered(description(name)) }
            guard !health.isDraining else {
                throw HeadRefusal(answer: .unavailable("This process is about to stop; repeat the call."))
            }
            let query = RequestQuery(head)
            let signature = try admission.headers(of: head, query)
            return .request(
                IngestRequest(name: name, start: start, head: head, call: call, query: query, signature: signature))
        } catch {
            return .answered(response(error.answer, name, since: start, withBody: head.method != .HEAD))
        }
    }

    /// The answer to a request that is whole; gives its body back to the budget.
    func respond(to request: IngestRequest) async -> HTTPResponse {
        defer { bodies.giveBack(request.body.count) }
        let answer = await answer(to: request)
        mirror?.take(request, answer)
        return response(to: request, answer)
    }

    /// What goes out for an answer to a request.
    func response(to request: IngestRequest, _ answer: HTTPAnswer) -> HTTPResponse {
        response(answer, request.name, since: request.start)
    }

    private func answer(to request: IngestRequest) async -> HTTPAnswer {
        do throws(HeadRefusal) {
            let admitted = try await admission.admit(
                request.head, request.signature, request.query, body: request.body)
            var answer = HTTPAnswer(await answer(request.call, request.query, request.body, admitted.caller))
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
            logger.warning("A call ended with an unknown outcome", metadata: ["request_id": "\(name)"])
        }
        var headers = answer.headers(requestID: name)
        // A caller that goes on over this connection while it drains would meet a closed one.
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
