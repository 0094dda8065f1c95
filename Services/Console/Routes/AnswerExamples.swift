import BusMessages
import SwiftProtobuf
import SyncModel
import SyncStore

/// One answer of each kind with every member present. The API's page shows them, and the schemas of the description are
/// made from them, by the encoding of the answers (C11).
enum AnswerExamples {
    private static let words = PageTexts.of(.english)
    private static let moment = WallTime(milliseconds: 1_767_225_600_000)
    private static let instanceID = InstanceID("space_app")

    // MARK: Instances and configurations

    static let instance: InstanceItem = {
        let gateway = ValidatorForm.MobileGateway(appID: "app", workspaceID: "space")
        let limits = KeyLimits(requestsPerSecond: 100, pushesPerDay: 1_000_000)
        let key = AppKey(
            id: "k0123456789abcdef", purpose: .backend, sealedSecret: [], limits: limits, createdAt: moment)
        return InstanceItem(
            Instance(
                id: instanceID, name: "App", isEnabled: true, validatorURL: "https://tenant.example/validate",
                verdictLifetime: .seconds(600), validatorForm: .mobileGateway(gateway), limits: limits, keys: [key],
                revision: 1), words)
    }()
    static let instances = InstanceRoutes.List(instances: [instance], isEmpty: false, mayCreate: true)
    static let key = InstanceRoutes.CreatedKey(
        id: "k0123456789abcdef", purpose: "device", secret: "c2VjcmV0", metaConfig: "{\"instanceId\":\"space_app\"}\n")
    static let createdInstance = InstanceRoutes.Created(instance: instance, key: key)
    static let check = InstanceRoutes.CheckAnswer(
        verdict: "invalid", reason: "the session is not valid", milliseconds: 12, detail: "Invalid: …")
    static let configuration = ConfigurationItem(
        SyncConfiguration(
            instanceID: instanceID, bizType: BizType("ORDER-PAID"), description: "Paid orders", kind: .user,
            isMultiDevice: true, isPersistent: true, repush: .threshold(100), checksSession: true, isOnline: true,
            verdictLifetime: .seconds(60), revision: 1), words)
    static let configurations = ConfigurationRoutes.List(
        configurations: [configuration], total: 1, page: 1, pages: 1, search: "", isOnline: false, isOffline: false,
        isEmpty: false, before: nil, after: nil, newPage: "", rollouts: "", mayChange: true)

    // MARK: Pushes

    static let push = PushRoutes.Answer(
        success: true, msg: "SUCCESS", retryable: false, detail: "Stored and sent to its devices.",
        thirdMsgId: "order-1", oplogId: 7, dryRun: false, reached: 1,
        states: [PushRoutes.State(state: "ON_ITS_WAY", devices: 1, detail: "Nothing stands in the way.")],
        firstStage: 1, trace: "/instances/space_app/trace?bizType=ORDER-PAID&linkToken=u1&thirdMsgId=order-1",
        rollout: "/instances/space_app/rollout?bizType=NEWS&thirdMsgId=news-1")
    static let data = DataRoutes.Result(
        by: "user", id: "u1", connected: true, pushes: 1, arrivals: 1,
        list: [
            DataRoutes.Line(
                bizType: "ORDER-PAID", oplogId: 7, global: false, firstPushAt: moment.milliseconds,
                arrivedAt: moment.milliseconds, firstText: nil, arrivedText: nil, trace: "")
        ], next: "1767225600000.1.7", isEmpty: false, older: nil, devices: [], devicePage: "", hasMoreDevices: false)
    static let trace: TraceRoutes.Trace = {
        let moments = [
            TraceRoutes.Moment(
                at: moment.milliseconds, detail: "Accepted and stored", atText: nil, isBlock: false)
        ]
        let receiver = TraceRoutes.Receiver(
            deviceId: "d1", connected: true, state: "DELIVERED", detail: "The app has confirmed it.",
            timeline: moments, isGood: true, page: "")
        return TraceRoutes.Trace(
            bizType: "ORDER-PAID", linkToken: "u1", thirdMsgId: "order-1", oplogId: 7,
            acceptedAt: moment.milliseconds, validUntil: moment.milliseconds, recalledAt: moment.milliseconds,
            state: "DELIVERED", detail: "The app has confirmed it.", receivers: [receiver],
            counts: [TraceRoutes.Count(state: "DELIVERED", devices: 1, detail: "The app has confirmed it.")],
            isGood: true, isBad: false, isGlobal: false, acceptedText: nil, validText: nil, back: nil, backName: nil,
            device: "", user: "", hasCounts: true, recallAPI: "", mayRecall: false)
    }()
    static let rollout: RolloutItem = {
        let name = Rollout.Name(
            instanceID: instanceID, bizType: BizType("NEWS"), id: ThirdMessageID("news-1"))
        var rollout = Rollout(name: name, state: .running)
        let plan = RolloutPlan(id: name.id, stages: [100, 1_000, 10_000], interval: .seconds(3_600))
        rollout.stages = plan.stages.enumerated().map { number, share in
            Rollout.Stage(share: share, id: plan.stageID(number + 1), oplogID: number == 0 ? OplogID(7) : nil)
        }
        (rollout.interval, rollout.dueAt) = (plan.interval, moment)
        (rollout.startedBy, rollout.startedAt) = ("console:alice", moment)
        (rollout.changedBy, rollout.changedAt) = ("console:alice", moment)
        return RolloutItem(rollout, words, hasFigures: true)
    }()
    static let rollouts = RolloutRoutes.List(rollouts: [rollout], isEmpty: false, isCut: false, configurations: "")
    static let deadLetters = DeadLetterRoutes.List(
        letters: [
            DeadLetterRoutes.Letter(
                bizType: "ORDER-PAID", linkToken: "u1", oplogId: 7, thirdMsgId: "order-1", deviceId: "d1", attempts: 7,
                deadAt: moment.milliseconds, replayable: true, deadText: "", trace: "")
        ], bizType: "", isEmpty: false, isCut: false, back: "", api: "", mayChange: true)
    static let deviceOperations = DeviceOperationRoutes.List(
        operations: [
            DeviceOperationRoutes.Operation(
                .with {
                    $0.number = 7
                    $0.deviceID = "d1"
                    $0.userID = "u1"
                    $0.operationID = "9f0c"
                    $0.component = "ORDER"
                    $0.entityKey = "17"
                    $0.name = "update"
                    $0.state = UInt32(DeviceOperationState.dead.rawValue)
                    $0.attempts = 10
                    $0.code = 504
                    $0.message = "given up"
                    $0.takenAtMs = moment.milliseconds
                    $0.bodyBytes = 12
                }, words)
        ], waiting: 0, dead: 1,
        days: [
            DeviceOperationRoutes.Day(
                .with {
                    $0.day = "2026-01-01"
                    $0.component = "ORDER"
                    $0.accepted = 120
                    $0.refused = 3
                    $0.dead = 1
                    $0.attempts = 131
                    $0.waitedMs = 9_300
                })
        ], hasDays: true, choices: [], isEmpty: false, isCut: false, back: "", api: "", mayChange: true)

    static let diagnosis = DiagnosisItem(
        DiagnosisStore.Held(
            taskID: "0123456789abcdef", instanceID: instanceID, deviceID: DeviceID("d1"), userID: UserID("u1"),
            description: "the app ends by itself", actor: "console:alice", createdAt: moment, changedAt: moment,
            request: DiagnosisRequest(
                from: WallTime(milliseconds: 1_767_222_000_000), to: moment, level: "info", network: "wifi",
                limitBytes: 5_000_000),
            run: 1, state: .refused, refusal: "too-large", file: "0123456789abcdef-1.log", fileBytes: 6_000_000,
            fileSHA256: "", partCount: 47, takenParts: 0, takenBytes: 0), words)
    static let diagnoses = DiagnosisRoutes.List(
        tasks: [diagnosis], isEmpty: false, back: "", api: "", mayChange: true, levels: [], usualBytes: 0,
        bytesMaximum: 0)

    // MARK: Devices

    private static let connection = DeviceItem(
        .with {
            $0.deviceID = "d1"
            $0.userID = "u1"
            $0.gatewayID = "gateway-0"
            $0.operatingSystem = .ios
            $0.appVersion = "10.2.1"
            $0.sinceMs = moment.milliseconds
        }, of: instanceID, words)
    static let devices = DeviceRoutes.List(
        devices: [connection], next: "d1", device: "", user: "", devicePage: nil, isEmpty: false, after: nil,
        browserDevice: nil, diagnosis: "", mayChange: true)
    static let device = DeviceRoutes.Detail(
        deviceId: "d1", connection: connection,
        channels: [
            DeviceRoutes.Channel(
                bizType: "ORDER-PAID", scope: "appointed", target: "user", head: 7, syncPoint: 7, scopeWord: "",
                targetWord: "", isBehind: false)
        ], list: "", data: "", api: "", mayChange: true)

    // MARK: Overview, records, accounts

    static let overview: OverviewFigures = {
        let step = OverviewFigures.Step(
            at: moment.milliseconds, pushes: 1, arrivals: 1, backlog: 0, connected: 1, p50: 4.2, p99: 11)
        let process = OverviewFigures.Process(
            service: "mss-gateway", version: "0.1.0", ready: false, startedAt: moment.milliseconds, missing: ["amqp"],
            startedText: "", missingText: "")
        return OverviewFigures(
            connected: 1, pushes: 1, arrivals: 1, p50: 4.2, p99: 11, backlog: 0, deadLetters: 0, verdictFailures: 0,
            lagSeconds: 0.5, steps: [step], processes: [process],
            queues: [OverviewFigures.Queue(name: "mss.append", waiting: 0, consumers: 2, isBad: false)], p50Text: "",
            p99Text: "", lagText: "", isLate: false, hasDeadLetters: false, charts: [],
            updatedAt: moment.milliseconds, updatedText: "")
    }()
    static let record = RecordItem(
        OperationRecord(
            number: 1, recordedAtMicroseconds: moment.milliseconds * 1_000, actor: "console:alice",
            source: "192.0.2.7", actionCode: OperationAction.modifyConfiguration.rawValue, instanceID: instanceID,
            subject: "ORDER-PAID",
            before: "{\"online\": false}", after: "{\"online\": true}", previousHash: [0], hash: [1]),
        page: "", words)
    static let records = RecordRoutes.List(
        records: [record], next: 1, isEmpty: false, isRecent: true, actor: "", from: nil, to: nil, actions: [],
        older: nil, export: "", here: "", isOfService: false)
    static let account = AccountRoutes.Item(
        name: "alice", enabled: true, roles: ["space_app": "operator"], invited: false, secondFactor: true,
        revision: 1, grants: [], page: "", api: "", isSelf: false, records: "")
    static let accounts = AccountRoutes.List(accounts: [account], next: "alice", instances: [])
    static let invitation = ["invitation": "/choose-password#…"]
    static let session = SessionRoutes.Started(token: "…", account: "alice")
    static let me = SessionRoutes.Me(
        account: "alice", language: "en", roles: ["space_app": "operator"], secondFactor: true,
        keepsSecondFactors: true, mustEnrol: false, isEnglish: true, isChinese: false, grants: [])
    static let secondFactor = ["secret": "…", "text": "…", "address": "otpauth://totp/MSS:alice?secret=…&issuer=MSS"]
}
