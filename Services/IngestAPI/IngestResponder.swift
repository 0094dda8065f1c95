import Hummingbird
import Logging
import NIOCore
import NIOHTTP1
import ServiceKit
import SyncModel

/// The HTTP face of the API: what the head decides, the body within its bound, the answer with its request id.
struct IngestResponder: HTTPResponder {
    typealias Context = BasicRequestContext

    let intake: PushIntake
    let operations: OperationIntake
    let health: HealthState
    let metrics: IngestMetrics
    let logger: Logger

    func respond(to request: Request, context: Context) async throws -> Response {
        let start = ContinuousClock.now
        let requestID = RequestName.make()
        if APICall(path: (request.head.path ?? "").prefix { $0 != "?" }) == .description, request.head.method == .get {
            return Self.description
        }
        var answer = try await answer(to: request)
        // A caller that goes on over this connection would meet a closed one.
        if health.isDraining { answer.closesConnection = true }
        metrics.answered(answer)
        metrics.took(.now - start)
        if answer.code == .systemError, answer.status == .ok {
            logger.warning("A push ended with an unknown outcome", metadata: ["request_id": "\(requestID)"])
        }
        return response(answer, requestID)
    }

    private func answer(to request: Request) async throws -> APIAnswer {
        do throws(HeadRefusal) {
            let call = try RequestRules.call(of: request.head)
            guard !health.isDraining else {
                throw HeadRefusal(answer: .unavailable("This process is about to stop; repeat the call."))
            }
            guard let body = await read(request, atMost: call.bodyBytes) else {
                return RequestRules.bodyTooLong(of: call)
            }
            return await answer(call, RequestQuery(request.head), body)
        } catch {
            return error.answer
        }
    }

    private func answer(_ call: APICall, _ query: RequestQuery, _ body: [UInt8]) async -> APIAnswer {
        let instanceID = query["instanceId"]
        do throws(PushRefusal) {
            let isDryRun = try query.isDryRun
            switch call {
            case .push(let scope):
                return await intake.answer(scope: scope, instanceID: instanceID, body: body, isDryRun: isDryRun)
            case .batch: return await intake.answerBatch(instanceID: instanceID, body: body, isDryRun: isDryRun)
            case .recall: return await operations.recall(instanceID: instanceID, body: body)
            case .trace, .description: return await operations.trace(query)
            }
        } catch {
            return .result(error.code, detail: error.detail)
        }
    }

    private static let description = Response(
        status: .ok, headers: [.contentType: "application/json;charset=UTF-8"],
        body: .init(byteBuffer: ByteBuffer(bytes: PackageResources.openapi_json)))

    /// The body, nil when it is longer than allowed.
    private func read(_ request: Request, atMost bytes: Int) async -> [UInt8]? {
        var body: [UInt8] = []
        do {
            for try await part in request.body {
                guard body.count + part.readableBytes <= bytes else { return nil }
                body.append(contentsOf: part.readableBytesView)
            }
        } catch {
            // The connection fell or broke the protocol: whoever reads the answer, a cut body is no JSON object.
            return []
        }
        return body
    }

    private func response(_ answer: APIAnswer, _ requestID: String) -> Response {
        var headers = HTTPFields()
        for (name, value) in answer.headers(requestID: requestID) {
            if let name = HTTPFields.Element.Name(name) { headers[name] = value }
        }
        if answer.closesConnection { headers[.connection] = "close" }
        return Response(
            status: .init(code: Int(answer.status.code), reasonPhrase: answer.status.reasonPhrase), headers: headers,
            body: .init(byteBuffer: ByteBuffer(string: answer.body(requestID: requestID))))
    }
}
