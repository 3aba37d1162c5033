"""Chinese words that customers of shops use for one another. Pure data.

A line is a concept and what stands for it. Characters of no line mean only themselves.
"""

from __future__ import annotations

from apps.engine.paraphrase.meaning import listed

CONCEPTS = """
return: 退货 退回 退掉 寄回 寄回去 寄还 退回去 退还商品 退换 退 退货办理
refund: 退款 退钱 退还 返还 返款 钱退回 退回来 退现金
exchange: 换货 换成 兑换成 兑换 调换 换个 换
cancel: 取消 撤销
order: 订单 下单 单子 下的单 订购 一单 这单
ship: 发货 出货 发出 寄出 发走
delivery: 配送 寄送 邮寄 寄到 送到 发到 发货到 配送到 投递到 送货到 寄 送 投递 快递到 运送 运到 送达
receive-goods: 收货 收到货
pickup: 自提 自取 取货 到店取 提货
parcel: 包裹 快递 快件 邮包
carrier: 快递公司 物流公司 承运商
locker: 快递柜 自提柜 包裹柜
tracking: 物流 物流信息
repair: 修 维修 修理 修补 补 修好
resend: 补发 补寄 重发
change: 改 修改 更改 变更 更换 更新 改成
remove: 去掉 减掉 删掉 去除 除掉 除去 减 拿掉
delete: 删除 注销 销户
add: 加 添加 增加 添 加上 追加
clean: 洗 清洗 清洁 洗干净 刷干净 清理 弄干净 擦洗 刷
dry: 晾干 晾 弄干 烘干
keep: 保留 留着
stash: 存放 保存 收纳 收起来 储存 存 收好
buy: 买 购买 买到
sell: 卖 出售
pay: 付款 支付 付钱 付 结账
spend: 消费 花
charge: 充电 充满电 充 充满
debit: 扣款 扣钱 收款
cost: 价格 费用 价钱
shipping-fee: 运费 邮费 快递费 配送费 寄送费 物流费
member-fee: 会费 会员费
free: 免费 免
free-shipping: 包邮 免运费 免邮 免邮费
interest: 利息
no-interest: 免息
instalment: 分期 分期付款 分期支付
decline: 拒绝 拒收 拒
pay-fail: 付款失败 支付失败 付不了款 付不了 被拒 被拒绝 被拒了
warranty: 保修 质保 保修期 质保期
claim: 申请
cover: 包括 包含 涵盖
within-cover: 保修范围 保修范围内 在保修范围内
expire: 过期 到期 失效 清零
valid: 有效期 有效 使用期限 有效期限
express: 加急 特快 加急件
credit-card: 信用卡
bank-card: 银行卡
washer: 洗衣机
powder: 洗衣粉
soap: 肥皂
fail: 失败 不成功
extend: 延期 延长 续期 延长有效期
use: 用 使用
balance: 余额
lose: 丢 丢了 丢失 遗失 弄丢 不见了 找不到 找不到了 不见
damage: 破损 损坏 坏 坏了 坏掉 破了 破 弄坏
swell: 鼓包 鼓 鼓起来 膨胀 鼓起
missing: 少了 少 缺 缺了 少发 漏发 少发了 漏了
wrong: 发错 寄错 送错 发错了 不对 错
unpack: 拆开 拆封 打开 拆 拆了 拆过
engrave: 刻字 刻了字 刻过字
wax: 打蜡 打过蜡 打了蜡 上蜡 上过蜡
dye: 染色 染过色
glue: 密封胶 胶
wear: 穿 穿过 穿了
try-on: 试穿 试穿过 试过
off: 脱胶 开胶 掉 掉下来
wet: 湿 湿了 弄湿 沾了水 沾水
mould: 发霉 长霉 霉 霉点 霉斑 霉菌
hole: 洞 破洞 破了个洞
tear: 断 断了 断掉
leak: 漏水
waterproof: 防水
measure: 量 测量 测
choose: 选 选择 挑 挑选
recommend: 推荐 适合 合适 建议
size: 尺码 码 鞋码 大小 尺寸 码数
size-between: 两个尺码之间 两个码之间 两个尺码中间 两个码中间 介于两个尺码之间 介于两个码之间 在两个尺码之间
half-size: 半码
wide: 宽楦 宽版 宽一点 宽 宽一点的
narrow: 窄
foot: 脚 脚长
break-in: 磨合
shop: 门店 店 实体店 店铺 店里 商店
address: 地址
country: 国家
account: 账户 账号 帐号
email: 邮箱 邮件地址 邮箱地址
password: 密码
invoice: 发票 开发票
photo: 照片 图片 相片
receipt: 小票 收据
member: 会员
gold: 金卡 金卡会员
become: 成为 升级为 升级成 升级 变成
benefit: 优惠 好处 权益 福利
points: 积分
human: 人工 人工客服 真人
contact: 联系 找 转
phone: 电话 电话号码 客服电话
call: 打电话
open-shop: 营业 开门 开店 上班
close-shop: 关门 打烊 下班
hours: 营业时间 开门时间
sunday: 周日 星期天 星期日 礼拜天 礼拜日
saturday: 周六 星期六 礼拜六
method: 方式 办法
currency: 货币 币种
customs: 关税 进口税
reason: 理由 原因
condition: 状态 要求
denomination: 面额
spare: 配件 零件 零配件
cash: 现金
cash-out: 兑现 提现 兑换现金 换现金 换成现金 兑换成现金 取现金 取现
money: 钱
search: 查件 找件
check: 查 查询 查看 看
download: 下载
recycle: 回收
winter: 冬天 冬季
bring: 带 带上 携带
plane: 飞机 坐飞机 乘飞机 上飞机
dog: 狗 狗狗 宠物狗
normal: 正常
lift: 抬 抬起 抬起来
heel: 脚跟 后跟
several: 几个 多个 好几个 分开 多件
split: 分成 拆成 分
both: 两只 两只都 一起
before: 之前 以前 前
after: 之后 以后 后
outside: 户外 室外 外面
inside: 室内 里面 家里 在家
enter: 进 进入 进店
arrive: 到货 送来 送到时 到的时候
received: 收到 拿到
signed: 签收 已签收
seam: 接缝
only: 只有 只 仅 只是
already: 已经 已
other: 别的 其他 另一个 另外的 其它
""".strip()

# Say nothing about what is asked.
IDLE = listed(
    """
每张 每个 每单 的人 行吗 行不 的话 的时候 时候 上的 里的 一下 一个 一件 一张 一双 一盏 一款 一种 一些 一点 有点
你们 您们 我们 咱们 他们 它们 这个 那个 这些 那些 这样 可以 能够 应该 是否 想要 需要 知道 告诉
帮我 帮忙 平时 要是 如果 是不是 允许 支持 接受 提供 东西 商品 产品 物品 货品 宝贝 办理 操作 具体
一般 通常 大概 还有 比较 一点儿 都有 都是 重新 请问 怎么样 情况 问题 件商品 你们家
贵店 店家 商家 做 的 了 吗 呢 吧 啊 呀 哦 啦 我 你 您 它 是 有 会 能 在 把 被 给 就 也 还 很 请
个 这 那 里 着 到 和 与 跟 想 让 该 要 得 可 弄 时 再 过 才 件 货 款 双
"""
)

# Words in which 不, 没, 无, 非, 别 and 未 deny nothing.
NOT_DENYING = (
    dict.fromkeys(("不同", "不一样", "别的"), "=other")
    | dict.fromkeys(listed("差不多 不过 不但 不仅 非常 无论 不管 特别 没关系 不好意思 要不"), "")
    | {word: word for word in listed("别人 不锈钢 无线 未来 分别 级别 类别 区别")}
)

ANTONYMS = (
    ("open-shop", "close-shop"), ("add", "remove"), ("wide", "narrow"), ("before", "after"), ("inside", "outside"),
    ("大", "小"), ("新", "旧"), ("buy", "sell"), ("里面", "外面"), ("免费", "收费"),
)  # fmt: skip

DEALINGS = listed(
    "return refund exchange cancel order ship delivery receive-goods pickup repair resend change remove delete add"
    " clean keep stash buy sell pay charge debit claim extend use contact call recycle wear"
)
