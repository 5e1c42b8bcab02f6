# 500 requests at once to a server in the same process.
node -e '
const http=require("http");const s=http.createServer((q,r)=>setTimeout(()=>r.end("hello "+q.url),5));
s.listen(0,"127.0.0.1",async()=>{const port=s.address().port;
const get=i=>new Promise((y,n)=>http.get({port,host:"127.0.0.1",path:"/"+i,agent:false},r=>{let b="";r.on("data",d=>b+=d);r.on("end",()=>y(b))}).on("error",n));
const all=await Promise.all([...Array(500).keys()].map(get));console.log(all.length,all.every((b,i)=>b=="hello /"+i));s.close()})'
