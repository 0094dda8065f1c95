import AsyncHTTPClient
import Foundation
import Hummingbird
import Logging
import MobileSync
import NIOCore
import NIOHTTP1

/// The tenant's backend: executes operations, stores photos, and pushes changes to users.
///
/// A change, its response and its pushes are written to one file before the response is sent. So a backend that was
/// killed gives the same response to a repeat, and sends the pushes that it had not sent.
actor FieldBackend {
    private static let photoBytes = 5_000_000

    private let file: URL
    private let api: String
    private let instance: String
    private var records: FieldRecords
    private var isSending = false

    /// Reads the stored records, or creates the tutorial's incidents.
    ///
    /// - Parameters:
    ///   - api: the address of the API for pushes, such as `http://127.0.0.1:7080`.
    ///   - users: the users of the app, who receive a push about every change. They do not change after the first run.
    init(folder: URL, api: String, instance: String, users: [String]) throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        file = folder.appending(path: "backend.json")
        self.api = api
        self.instance = instance
        var records = FieldRecords(users: users)
        if let data = try? Data(contentsOf: file) { records = try JSONDecoder().decode(FieldRecords.self, from: data) }
        records.seed(
            "Incident",
            [
                "1": ["id": "1", "title": "Leaking pump", "status": "open"],
                "2": ["id": "2", "title": "No light in hall 3", "status": "open"],
            ])
        self.records = records
    }

    /// Serves until the process is asked to end. First it sends the pushes that are left.
    func run(port: Int) async throws {
        try save()
        while !records.owed.isEmpty {
            await sendPushes()
            if !records.owed.isEmpty { try await Task.sleep(for: .milliseconds(200)) }
        }
        let responder = CallbackResponder { (request: Request, _: BasicRequestContext) in
            let body = try await request.body.collect(upTo: Self.photoBytes)
            return await self.answer(request, Data(body.readableBytesView))
        }
        let application = Application(
            responder: responder, configuration: .init(address: .hostname("127.0.0.1", port: port)),
            onServerRunning: { _ in print("the backend listens on 127.0.0.1:\(port)") },
            logger: Logger(label: "backend") { _ in SwiftLogNoOpLogHandler() })
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await application.runService() }
            group.addTask {
                while !Task.isCancelled {
                    try await Task.sleep(for: .seconds(1))
                    await self.sendPushes()
                }
            }
            try await group.next()
            group.cancelAll()
        }
    }

    private func answer(_ request: Request, _ body: Data) async -> Response {
        let path = request.uri.path
        let key = HTTPFields.Element.Name("Idempotency-Key").flatMap { request.headers[$0] } ?? ""
        let answer: FieldRecords.Answer
        switch (request.method, path.split(separator: "/").map(String.init)) {
        case (.post, ["operations"]):
            guard !key.isEmpty, let call = try? JSONDecoder().decode(OperationCall.self, from: body) else {
                return Response(status: .badRequest)
            }
            answer = records.perform(call, key: key)
        case (.put, let parts) where parts.count == 2 && parts[0] == "photos":
            let type = request.headers[.contentType] ?? "application/octet-stream"
            answer = records.putPhoto(parts[1], body, contentType: type, condition: request.headers[.ifMatch])
        case (.get, let parts) where parts.count == 2 && parts[0] == "photos":
            guard let photo = records.photos[parts[1]] else { return Response(status: .notFound) }
            let isKnown = request.headers[.ifNoneMatch] == photo.tag
            return Response(
                status: isKnown ? .notModified : .ok, headers: [.eTag: photo.tag, .contentType: photo.contentType],
                body: isKnown ? ResponseBody() : ResponseBody(byteBuffer: ByteBuffer(bytes: photo.bytes)))
        case (.get, let parts) where parts.count == 2 && parts[0] == "sessions":
            // A backend of your own checks a password here, and its session check knows the session.
            guard records.users.contains(parts[1]) else { return Response(status: .notFound) }
            return Response(status: .ok, body: ResponseBody(byteBuffer: ByteBuffer(string: "session-\(parts[1])")))
        default: return Response(status: .notFound)
        }
        do {
            try save()
        } catch {
            // A response must not be sent before its change is on disk. A repeat finds the change in memory, and it is
            // written then.
            return Response(status: .serviceUnavailable)
        }
        await sendPushes()
        var headers: HTTPFields = [.contentType: "application/json"]
        headers[.eTag] = answer.tag
        return Response(
            status: .init(code: answer.status), headers: headers,
            body: ResponseBody(byteBuffer: ByteBuffer(string: answer.body)))
    }

    private func save() throws { try JSONEncoder().encode(records).write(to: file, options: .atomic) }

    /// Sends the pending pushes, in order. A failed push is repeated a second later.
    private func sendPushes() async {
        if isSending { return }
        isSending = true
        defer { isSending = false }
        while let push = records.owed.first {
            for user in push.user.map({ [$0] }) ?? records.users {
                guard await send(push, to: user) else { return }
            }
            records.removeSent([push])
            try? save()
        }
    }

    private func send(_ push: FieldRecords.Push, to user: String) async -> Bool {
        var request = HTTPClientRequest(url: "\(api)/webapi/sync/single?instanceId=\(instance)")
        request.method = .POST
        request.headers = ["Content-Type": "application/json", "Content-Encoding": "UTF-8"]
        let members = ["bizType": push.bizType, "linkToken": user, "thirdMsgId": push.id, "payload": push.payload]
        guard let body = try? JSONEncoder().encode(members) else { return true }
        request.body = .bytes(ByteBuffer(bytes: body))
        guard let response = try? await HTTPClient.shared.execute(request, timeout: .seconds(2)),
            let answer = try? await response.body.collect(upTo: 65_536)
        else { return false }
        // A repeat finds the first push.
        return ["\"success\":true", "DUPLICATED_BIZ_ID"].contains { String(buffer: answer).contains($0) }
    }
}
